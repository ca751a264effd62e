"""Which run of which machine this is, and which files more than one machine may be writing.

Times in a file of this host count from its start. They mean something only to processes of the same boot, on the same
clock.
"""

import errno
import os

from trinco.core.errors import StoreUnavailable
from trinco.core.value import Value

_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.ceph",
)


class Boot(Value):
    """``boot_id``: another one after every start. ``machine_id``: the same for as long as the system is installed;
    empty if there is none. ``offset``: how far this process's time namespace has moved the clock."""

    __slots__ = ("boot_id", "machine_id", "offset")

    def __init__(self, boot_id: str, machine_id: str, offset: str = "0 0") -> None:
        self.boot_id = boot_id
        self.machine_id = machine_id
        self.offset = offset


def this_boot() -> Boot:
    boot_id = _text("/proc/sys/kernel/random/boot_id") or _sysctl("kern.bootsessionuuid")
    if not boot_id:
        raise StoreUnavailable(
            "this system does not say when it was started, so leases in a file would not end with it: "
            "use a store on a server (redis://, postgresql://) or memory:"
        )
    machine_id = _text("/etc/machine-id") or _text("/var/lib/dbus/machine-id") or _sysctl("kern.hostuuid")
    return Boot(boot_id, machine_id, _clock_offset())


def mounts() -> str:
    """What the kernel says about the file systems that this process sees; empty if it does not."""
    return _text("/proc/self/mountinfo")


def network_filesystem(path: str, mounted: str) -> str | None:
    """The kind of the file system that a path is on, if other machines can write there too: their kernels do not share
    locks and memory with ours. ``mounted`` is what ``mounts`` gives."""
    kind, longest = "", -1
    for line in mounted.splitlines():
        fields, _, rest = line.partition(" - ")
        place = fields.split(" ")[4].replace("\\040", " ").rstrip("/")
        if len(place) >= longest and f"{path}/".startswith(f"{place}/"):
            kind, longest = rest.split(" ")[0], len(place)
    return kind if kind in _NETWORK else None


def _clock_offset() -> str:
    for line in _text("/proc/self/timens_offsets").splitlines():
        name, *offset = line.split()
        if name == "boottime":
            return " ".join(offset)
    return "0 0"


def _text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # it may be there
            raise StoreUnavailable(
                f"{path} cannot be read: {error.strerror}; close some, or raise the limit (ulimit -n)"
            ) from None
        return ""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _sysctl(name: str) -> str:
    """A text that a BSD kernel knows by name (macOS); empty elsewhere."""
    if os.path.exists("/proc/sys"):
        return ""
    import ctypes

    system = ctypes.CDLL(None)
    size = ctypes.c_size_t(256)
    text = ctypes.create_string_buffer(256)
    if not hasattr(system, "sysctlbyname") or system.sysctlbyname(name.encode(), text, ctypes.byref(size), None, 0):
        return ""
    return text.value.decode(errors="replace")
