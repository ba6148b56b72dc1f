#!/bin/sh
# A hook that narrows: a call may list at most 10 of what it asked for.
#
#   hooks:
#     shorten: {command: [/path/to/shorten.sh], tools: [search_files]}
#
# A number may only come nearer to zero; what is left out of the arguments is
# left out of the call.
call=$(cat)
limit=$(printf '%s' "$call" | sed -n 's/.*"limit":\([0-9]*\).*/\1/p')
if [ -n "$limit" ] && [ "$limit" -gt 10 ]; then
	printf '%s' "$call" | sed 's/.*"arguments":\({[^}]*}\).*/{"arguments":\1}/; s/"limit":[0-9]*/"limit":10/'
fi
