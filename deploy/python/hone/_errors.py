"""What goes wrong, one exception a status of the C interface; all of them are hone.Error."""


class Error(Exception):
    """Anything the runtime refuses or fails at; the message says what, where and why."""


class InvalidArgument(Error, ValueError):
    """An unknown name, a wrong shape or type, memory that cannot be used."""


class NotFound(Error, FileNotFoundError):
    """There is no such file."""


class Corrupt(Error):
    """Not a bundle, truncated, or damaged."""


class Unsupported(Error):
    """This machine cannot run the bundle; the message says what is missing."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""


class KernelFailed(Error):
    """A kernel reported a failure."""


class InternalError(Error):
    """A bug of Hone's."""


class DeviceLost(Error):
    """The device takes no more work of this process, or cannot be had."""


_BY_STATUS = {1: InvalidArgument, 2: NotFound, 3: Corrupt, 4: Unsupported, 5: OutOfMemory, 6: KernelFailed,
              8: DeviceLost}


def of_status(status):
    """The exception for a HoneStatus of the C interface."""
    return _BY_STATUS.get(status, InternalError)
