"""`zerotail failback`: a handover to the preferred site."""

from __future__ import annotations

from zerotail.cli.handover import make_group, no_target

command = make_group("failback", "Hand over to the preferred site: plan, run, status, resume.", no_target, no_target)
