"""Locks on files, which die with their process."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path


def is_open(path: Path, descriptor: int) -> bool:
    """Is it still this file that the name leads to? Somebody may have deleted it before it was locked."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def try_lock(descriptor: int) -> bool:
    """True once the lock is held; OSError where the file system has no locks."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
