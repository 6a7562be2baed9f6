"""Lets `python -m palisade_guest` find the standard library before the project.

With `-m`, Python looks for modules in the working directory first. A file `json.py` there would end
the build before it can name the fault.
"""

import os
import sys

if sys.argv[:1] == ["-m"] and "palisade_guest" in sys.orig_argv and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]
