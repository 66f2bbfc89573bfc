"""``python -m sparkcluster``: what ``scripts/cluster`` runs."""

import sys

from sparkcluster.command import main

sys.exit(main(sys.argv[1:]))
