"""A bolt that never says that it is done with a tuple."""

import storm

storm.run_bolt(lambda _t, _setup: None)
