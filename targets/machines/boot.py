"""The first program on a host: puts our code there, once for its content, and starts it.

Sent as an argument to the host's Python, so it needs nothing there; an older Python can read it.
"""

import base64
import shlex

SOURCE = r"""
import io, json, os, shutil, sys, zipfile
root, name, module = os.path.expanduser(sys.argv[1]), sys.argv[2], sys.argv[3]
place = os.path.join(root, "code", name)
fresh = "%s.%d" % (place, os.getpid())
def say(**told):
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
try:
    if sys.version_info < (3, 11):
        raise OSError("%s is Python %d.%d; 3.11 or later is needed: set python for this machine"
                      % ((sys.executable,) + tuple(sys.version_info[:2])))
    os.umask(0o022)
    if not os.path.exists(place):
        say(need=True)
        size = int(sys.stdin.buffer.readline())
        data = sys.stdin.buffer.read(size)
        if len(data) < size:
            raise OSError("the link broke while the code was sent")
        zipfile.ZipFile(io.BytesIO(data)).extractall(fresh)
        try:
            os.rename(fresh, place)
        except OSError:
            if not os.path.exists(place):
                raise
    os.chdir(place)
except Exception as error:
    say(fatal="%s: %s" % (root, getattr(error, "strerror", None) or error))
    shutil.rmtree(fresh, ignore_errors=True)
    sys.exit(1)
shutil.rmtree(fresh, ignore_errors=True)
try:
    os.utime(place)
except OSError:
    pass
say(have=True)
os.environ["PYTHONPATH"] = place
os.execv(sys.executable, [sys.executable, "-m", module, root] + sys.argv[4:])
"""


def command(python: str, root: str, identity: str, *arguments: str) -> str:
    """One line for any login shell: every word is quoted, the program is letters and digits."""
    packed = base64.b64encode(SOURCE.encode()).decode()
    program = f'import base64;exec(base64.b64decode("{packed}").decode())'
    return shlex.join((python, "-c", program, root, identity, *arguments))
