#!/bin/sh
# Backs up the readings every night at 2 o'clock; copies are kept for 35 days.
set -eu
TARGET=nas02:/backup/gauges
KEEP_DAYS=35
rsync -a --delete /srv/readings/ "$TARGET/$(date +%F)/"
find /backup/gauges -maxdepth 1 -mtime "+$KEEP_DAYS" -exec rm -r {} +
