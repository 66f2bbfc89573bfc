"""No child outlives the process that started it, however that ends.

Beside a process with children there is a guard: a shell that is told which groups of processes
there are, through a pipe, and their folders. When the pipe ends, since its other side has, it kills
them, and removes these. Linux can
do the same by itself (``PR_SET_PDEATHSIG``), but when the *thread* ends that started a child.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
import threading

#: How names of folders begin that the guard may remove; in the one for what is temporary.
FOLDERS = "thalweg-pids-"
_PROGRAM = """
groups=
while read -r sign group folder; do
    rest=
    for each in $groups; do
        [ "${each%%/*}" = "$group" ] || rest="$rest $each"
    done
    groups=$rest
    [ "$sign" = + ] && groups="$groups $group/$folder"
done
for each in $groups; do
    kill -KILL -"${each%%/*}" 2>/dev/null
done
for each in $groups; do
    case ${each#*/} in
        PREFIX*) rm -rf -- "$0/${each#*/}" ;;
    esac
done
exit 0
""".replace("PREFIX", FOLDERS)


class Guard:
    """Watches groups of processes; the shell is there while there are any."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        #: The groups, and the names of their folders.
        self._groups: dict[int, str] = {}
        self._shell: subprocess.Popen[bytes] | None = None

    def watch(self, group: int, folder: str = "") -> None:
        """Let a group end with this process, and a folder be removed then that was made for it."""
        folder = os.path.basename(folder)
        with self._lock:
            self._groups[group] = folder
            if self._shell is None:
                self._begin()
            else:
                self._tell(self._shell, f"+ {group} {folder}\n")

    def leave(self, group: int) -> None:
        """Forget a group that has ended."""
        with self._lock:
            self._groups.pop(group, None)
            if self._shell is None:
                return
            if self._groups:
                self._tell(self._shell, f"- {group}\n")
            else:
                self._end(self._shell)

    def close(self) -> None:
        """Let all groups end now."""
        with self._lock:
            self._groups.clear()
            if self._shell is not None:
                self._end(self._shell)

    def forked(self) -> None:
        """Leave what there is to the process of which this one is a copy."""
        shell = self._shell
        self._forget()
        if shell is not None and shell.stdin is not None:
            shell.stdin.close()
            shell.returncode = 0  # it is not this one's to wait for

    def _begin(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603 (the program above)
            ["/bin/sh", "-c", _PROGRAM, tempfile.gettempdir()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # what is sent to our group is not meant for it
        )
        self._tell(
            self._shell, "".join(f"+ {group} {name}\n" for group, name in self._groups.items())
        )

    def _tell(self, shell: subprocess.Popen[bytes], text: str) -> None:
        assert shell.stdin is not None  # noqa: S101 (it is a pipe)
        try:
            os.write(shell.stdin.fileno(), text.encode())
        except BrokenPipeError:  # somebody has killed it
            self._end(shell)
            self._begin()

    def _end(self, shell: subprocess.Popen[bytes]) -> None:
        self._shell = None
        if shell.stdin is not None:
            shell.stdin.close()
        shell.wait()


GUARD = Guard()
atexit.register(GUARD.close)
os.register_at_fork(after_in_child=GUARD.forked)
