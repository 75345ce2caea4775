"""Violations to be planted into clean histories: for each rule several ways to break it.

A plant takes the events of a clean history and gives back events in which one rule is broken, or None where
this history offers no place for it. `also` names the other rules that the same damage may rightly break: a
lost segment loses emissions too.
"""

from planted import clients, evidence, gate, liveness, loss, mirrors, numbers, phantoms, senders, sites
from planted.tools import PLANTED, Events, Planted, each, put

ROOMS = (clients, evidence, gate, liveness, loss, mirrors, numbers, phantoms, senders, sites)
"""Importing a room registers its plants."""

__all__ = ["PLANTED", "ROOMS", "Events", "Planted", "each", "put"]
