#!/bin/sh
# A hook: it is asked before a call, and refuses changes on Fridays.
#
#   hooks:
#     no-fridays: {command: [/path/to/no-fridays.sh], tools: [write_to_file, apply_diff]}
#
# The call is on standard input, as JSON. Status 0 lets it go on to the rules,
# status 2 refuses it with what is on standard error.
day=${DAY:-$(date +%u)}
if [ "$day" = 5 ]; then
	echo "nothing is changed on a Friday; read and plan instead" >&2
	exit 2
fi
