#!/usr/bin/env bash
# Runs README's commands from source as a newcomer does: in a minimal Debian with
# nothing but Go, make and a clone of this commit; as an ordinary user and as root;
# and again while 20 other programs want the processors.
#
#   .ci/fresh.sh [TIMES]    how often each way; default 1
#
# It needs root and debootstrap. Go's modules are those of this machine: nothing
# is fetched but Debian's packages, once.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:-1}
debian=$(bash .ci/debian.sh)
goroot=$(go env GOROOT)
modules=$(go env GOMODCACHE)
go mod download
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
git clone -q . "$top/ken"

# once USER LOAD: a clone of its own, no build cache, and no network but loopback.
once() {
	unshare --mount --propagation private --net --pid --fork --kill-child bash -euc '
		debian=$1 goroot=$2 modules=$3 clone=$4 user=$5 load=$6 top=$7
		mkdir "$top/over"
		mount -t tmpfs tmpfs "$top/over"
		mkdir "$top"/over/{upper,work,root}
		mount -t overlay overlay -o "lowerdir=$debian,upperdir=$top/over/upper,workdir=$top/over/work" "$top/over/root"
		root=$top/over/root
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mkdir -p "$root/usr/local/go" "$root/modules"
		mount --bind "$goroot" "$root/usr/local/go"
		mount -o remount,bind,ro "$root/usr/local/go"
		mount --bind "$modules" "$root/modules"
		mount -o remount,bind,ro "$root/modules"
		ip link set lo up 2>/dev/null || true
		chroot "$root" useradd -m newcomer
		home=$(chroot "$root" getent passwd "$user" | cut -d: -f6)
		cp -r "$clone" "$root$home/ken"
		chroot "$root" chown -R "$user" "$home/ken"
		for _ in $(seq "$load"); do (while :; do :; done) & done
		chroot "$root" setpriv --reuid="$user" --regid="$user" --init-groups env -i HOME="$home" \
			PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			GOMODCACHE=/modules GOPROXY=off GOFLAGS=-mod=mod GOTOOLCHAIN=local \
			sh -euc "cd ~/ken && make build && bin/ken version && make test"
	' fresh "$debian" "$goroot" "$modules" "$top/ken" "$1" "$2" "$top"
	rm -rf "$top/over"
}

for _ in $(seq "$times"); do
	for user in newcomer root; do
		for load in 0 20; do
			echo "== as $user, beside $load other programs"
			once "$user" "$load"
		done
	done
done
