import sys

from data.corpus.corpus import main

sys.exit(main())
