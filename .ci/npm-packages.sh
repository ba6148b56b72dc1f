# What .ci/npm.sh, .ci/clients.sh and .ci/web.sh share: it is sourced, and the
# folder with package.json is the current one.
#
# npm_packages NAME MODE COMMAND… installs the packages of the lock file with npm
# COMMAND (ci, or install) into a folder outside the tree, which is named by the
# lock file, so that a second run is free. It sets packages to that folder. It
# returns 75 where they are not here: npm is missing or cannot install, or MODE is
# have.
npm_packages() {
	local name=$1 mode=$2 hash cache work
	shift 2
	hash=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
	# Where root keeps them others must be able to read them: confined programs run
	# as other users.
	cache="${XDG_CACHE_HOME:-$HOME/.cache}"
	[ "$(id -u)" != 0 ] || cache=/var/cache
	packages="$cache/ken-$name-$hash"
	[ ! -e "$packages/done" ] || return 0
	[ "$mode" != have ] || return 75
	command -v npm >/dev/null || { echo "there is no npm: install the package npm" >&2; return 75; }
	mkdir -p "$cache"
	work=$(mktemp -d "$packages.XXXXXX")
	cp package.json package-lock.json .npmrc "$work/"
	# No scripts: a browser is never fetched, and nothing of a package runs before its test.
	npm "$@" --prefix "$work" --loglevel=error --ignore-scripts --no-audit --no-fund >&2 || { rm -rf "$work"; return 75; }
	chmod 755 "$work"
	touch "$work/done"
	mv -T "$work" "$packages" 2>/dev/null || { rm -rf "$work"; [ -e "$packages/done" ]; } # another run was quicker
}
