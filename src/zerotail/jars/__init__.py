"""The Java libraries: which ones, where they are kept, how they get there, and whether they are the right ones."""

from zerotail.jars.lock import Jar, jars_folder, locked_jars, require_jars
from zerotail.jars.resolve import install_jars

__all__ = ["Jar", "install_jars", "jars_folder", "locked_jars", "require_jars"]
