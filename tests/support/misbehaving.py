"""A trial that can be told to end its process, or to hang."""

import os
import signal
import time


def misbehave(how: str, number: int) -> int:
    """Square a number, unless told otherwise."""
    if how == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hangs":
        time.sleep(600)
    return number * number
