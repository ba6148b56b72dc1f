package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

const testVersion = "0.0.1-test.1"

// TestRelease makes a release of the commit, for this machine only, and looks at
// everything in it. Every night it makes it a second time, and installs it.
func TestRelease(t *testing.T) {
	testkit.Programs(t, "git", "ssh-keygen")
	if runtime.GOOS != "linux" {
		t.Skip("cannot here: the packages and the image are tried on Linux")
	}
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v %s", err, out)
	}
	t.Setenv("RELEASE_KEY", key)
	dist := makeTestRelease(t)

	t.Run("same bytes again", func(t *testing.T) { testSame(t, dist) })
	t.Run("checksums", func(t *testing.T) { testSums(t, dist) })
	t.Run("signature", func(t *testing.T) { testSignature(t, dist, key) })
	t.Run("provenance", func(t *testing.T) { testProvenance(t, dist) })
	t.Run("sbom", func(t *testing.T) { testSBOM(t, dist) })
	t.Run("archive", func(t *testing.T) { testArchive(t, dist) })
	t.Run("deb", func(t *testing.T) { testDeb(t, dist) })
	t.Run("rpm", func(t *testing.T) { testRPM(t, dist) })
	t.Run("npm", func(t *testing.T) { testNPM(t, dist) })
	t.Run("image", func(t *testing.T) { testImage(t, dist) })
	t.Run("formula", func(t *testing.T) { testFormula(t, dist) })
}

// makeTestRelease makes a release in a new folder.
func makeTestRelease(t *testing.T) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	err := run(t.Context(), []string{"-version", testVersion, "-root", "../..", "-o", dist, "-platforms", runtime.GOOS + "/" + runtime.GOARCH, "-url", "https://example.com/ken"})
	if err != nil {
		t.Fatal(err)
	}
	return dist
}

// artefact returns the one file of the release that fits a pattern.
func artefact(t *testing.T, dist, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s names %q, want one file", pattern, found)
	}
	return found[0]
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// testSame makes the release a second time: elsewhere, by a user with another home
// and time zone and, where KEN_RELEASE_COLD is set, with nothing compiled before.
func testSame(t *testing.T, dist string) {
	testkit.Nightly(t, "builds the release again")
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOENV"} { // they depend on the home
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(value)))
	}
	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	t.Setenv("HOME", elsewhere)
	t.Setenv("TZ", "Pacific/Auckland")
	if os.Getenv("KEN_RELEASE_COLD") != "" {
		t.Setenv("GOCACHE", filepath.Join(elsewhere, "cache"))
	}
	again := makeTestRelease(t)
	list, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Errorf("the release has only %d files", len(list))
	}
	for _, entry := range list {
		if !bytes.Equal(readFile(t, filepath.Join(dist, entry.Name())), readFile(t, filepath.Join(again, entry.Name()))) {
			t.Errorf("%s has other bytes the second time", entry.Name())
		}
	}
}

// testSums checks that the checksums are right and about every other file.
func testSums(t *testing.T, dist string) {
	told := map[string]string{}
	for line := range strings.Lines(string(readFile(t, filepath.Join(dist, sumsName)))) {
		digest, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		told[name] = digest
	}
	list, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), sumsName) {
			continue
		}
		sum := sha256.Sum256(readFile(t, filepath.Join(dist, entry.Name())))
		if got := told[entry.Name()]; got != hex.EncodeToString(sum[:]) {
			t.Errorf("the checksum of %s is %q, want %x", entry.Name(), got, sum)
		}
	}
}

func testSignature(t *testing.T, dist, key string) {
	signers := filepath.Join(t.TempDir(), "allowed_signers")
	if err := os.WriteFile(signers, append([]byte("releases@example.com "), readFile(t, key+".pub")...), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := readFile(t, filepath.Join(dist, sumsName))
	verify := func(text []byte) error {
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releases@example.com", "-n", signature, "-s", filepath.Join(dist, sumsName+".sig"))
		cmd.Stdin = bytes.NewReader(text)
		return cmd.Run()
	}
	if err := verify(sums); err != nil {
		t.Errorf("the signature does not hold: %v", err)
	}
	if err := verify(append(sums, ' ')); err == nil {
		t.Error("the signature holds for another text")
	}
}

func testProvenance(t *testing.T, dist string) {
	var statement struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   struct{ Version, Commit string }
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(dist, provenanceName)), &statement); err != nil {
		t.Fatal(err)
	}
	if len(statement.Subject) < 8 {
		t.Errorf("it is about %d files only", len(statement.Subject))
	}
	for _, s := range statement.Subject {
		if sum := sha256.Sum256(readFile(t, filepath.Join(dist, s.Name))); s.Digest["sha256"] != hex.EncodeToString(sum[:]) {
			t.Errorf("the digest of %s is not that of the file", s.Name)
		}
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	def := statement.Predicate.BuildDefinition
	if commit := strings.TrimSpace(string(head)); def.ExternalParameters.Commit != commit || def.ResolvedDependencies[0].Digest["gitCommit"] != commit || def.ExternalParameters.Version != testVersion {
		t.Errorf("it is about %+v, want commit %s", def, commit)
	}
}

func testSBOM(t *testing.T, dist string) {
	var bom struct {
		BOMFormat  string
		Components []struct {
			Name, Version string
			Licenses      []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(readFile(t, artefact(t, dist, "*.cdx.json")), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || len(bom.Components) < 20 {
		t.Fatalf("format %q with %d components", bom.BOMFormat, len(bom.Components))
	}
	may := []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "MPL-2.0"}
	for _, c := range bom.Components {
		if len(c.Licenses) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
		for _, l := range c.Licenses {
			if !slices.Contains(may, l.License.ID) {
				t.Errorf("%s has the licence %s", c.Name, l.License.ID)
			}
		}
	}
}

// unpack writes the files of a gzipped tar archive to a new folder.
func unpack(t *testing.T, data io.Reader) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(data)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(z)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		} else if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(at, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				if err = os.MkdirAll(filepath.Dir(at), 0o755); err == nil {
					err = os.WriteFile(at, content, h.FileInfo().Mode().Perm())
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func testArchive(t *testing.T, dist string) {
	dir := unpack(t, bytes.NewReader(readFile(t, artefact(t, dist, "ken_*.tar.gz"))))
	inner := filepath.Join(dir, "ken_"+testVersion+"_"+runtime.GOOS+"_"+runtime.GOARCH)
	for _, name := range []string{"LICENSE", "NOTICE", "LICENSES.txt", "README.md", "completions/ken.bash", "completions/_ken", "completions/ken.fish", "man/ken.1", "man/ken-serve.1"} {
		if info, err := os.Stat(filepath.Join(inner, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is missing or empty: %v", name, err)
		}
	}
	ken := filepath.Join(inner, "ken")
	sayVersion(t, exec.Command(ken, "--version"))
	if out, err := exec.Command("go", "version", "-m", ken).Output(); err != nil || !bytes.Contains(out, []byte("CGO_ENABLED=0")) {
		t.Errorf("the binary is not static: %v\n%s", err, out)
	}
}

// sayVersion checks what ken --version prints.
func sayVersion(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	head, err := exec.Command("git", "show", "-s", "--format=%H %cd", "--date=format-local:%Y-%m-%d", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commit, _, _ := strings.Cut(strings.TrimSpace(string(head)), " ")
	out, err := cmd.CombinedOutput()
	if want := "ken " + testVersion + " (commit " + commit[:12] + ", "; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%s: %v, prints %q, want %q", cmd, err, out, want)
	}
}

// inNamespace runs a shell script as root in a mount namespace of its own: what
// it mounts is gone with it.
func inNamespace(t *testing.T, script string, args ...string) {
	t.Helper()
	testkit.Nightly(t, "installs and starts the release")
	if os.Getuid() != 0 {
		t.Skip("cannot here: only root can mount and change the root folder")
	}
	if out, err := exec.Command("unshare", "--mount", "--propagation", "private", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot here: no mount namespace: %v %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh"}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// testDeb installs the package with dpkg in a Debian of its own, which KEN_DEBIAN
// names, under an overlay that is thrown away; it starts what its unit starts, and
// removes and purges it.
func testDeb(t *testing.T, dist string) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("cannot here: there is no dpkg")
	}
	deb := artefact(t, dist, "*.deb")
	t.Run("unit", func(t *testing.T) {
		root := t.TempDir()
		if out, err := exec.Command("dpkg-deb", "-x", deb, root).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Skip("cannot here: there is no systemd-analyze")
		}
		out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", "--root="+root, "/usr/lib/systemd/system/ken.service").CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("ken.service:")) {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	})
	t.Run("install", func(t *testing.T) {
		debian := os.Getenv("KEN_DEBIAN")
		if debian == "" {
			testkit.Nightly(t, "installs and starts the release")
			t.Skip("cannot here: KEN_DEBIAN is not set to a folder that .ci/debian.sh made")
		}
		inNamespace(t, installScript, deb, testVersion, debian)
	})
}

// installScript gets the package, its version, and a Debian. All that dpkg changes
// is in a tmpfs, and it sees nothing of the machine.
const installScript = `
deb=$1 version=$2 debian=$3 top=$TMPDIR/top
mkdir -p $top
mount -t tmpfs tmpfs $top
mkdir $top/upper $top/work $top/root
mount -t overlay overlay -o lowerdir=$debian,upperdir=$top/upper,workdir=$top/work $top/root
root=$top/root
mount -t proc proc $root/proc
for device in null zero random urandom; do touch $root/dev/$device; mount --bind /dev/$device $root/dev/$device; done
mount -t tmpfs tmpfs $root/run
mount -t tmpfs tmpfs $root/tmp
cp $deb $root/run/ken.deb
in_root() { chroot $root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }

in_root dpkg -i /run/ken.deb
in_root ken --version | grep -q "^ken $version (commit "
in_root getent passwd ken | grep -q :/var/lib/ken:
test -s $root/usr/share/man/man1/ken-serve.1.gz
test -s $root/usr/lib/systemd/system/ken.service

# The folders that systemd makes for the unit, and what the unit starts.
in_root install -d -m 0700 -o ken -g ken /var/lib/ken /var/lib/ken/workspace
mkfifo $top/said
in_root setpriv --reuid=ken --regid=ken --clear-groups --no-new-privs --bounding-set=-all env HOME=/var/lib/ken sh -c 'cd ~/workspace && umask 077 && exec ken serve --addr 127.0.0.1:0' >$top/said 2>$top/log &
ken=$!
exec 3<$top/said
read -r link <&3 || { cat $top/log; exit 1; }
url=${link%%/\?*}
status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
test "$(status $url/api/v1/catalog)" = 401
test "$(status -H "Authorization: Bearer $(cat $root/var/lib/ken/.ken/state/token)" $url/api/v1/catalog)" = 200
kill $ken
wait $ken || true

# Removing keeps the state, and purging does not.
in_root dpkg -r ken
! test -e $root/usr/bin/ken
test -s $root/var/lib/ken/.ken/state/token
in_root dpkg -P ken
! test -e $root/var/lib/ken
`

func testRPM(t *testing.T, dist string) {
	data := readFile(t, artefact(t, dist, "*.rpm"))
	if !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb, 3, 0}) {
		t.Errorf("it begins with % x, which is no RPM package", data[:6])
	}
	if rpm, err := exec.LookPath("rpm"); err == nil {
		out, err := exec.Command(rpm, "-qp", "--nosignature", "--qf", "%{NAME} %{LICENSE}\n[%{FILENAMES}\n]", artefact(t, dist, "*.rpm")).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "ken Apache-2.0\n") || !strings.Contains(string(out), "/usr/lib/systemd/system/ken.service\n") {
			t.Errorf("rpm: %v\n%s", err, out)
		}
	}
}

// testNPM installs the packages from a registry of its own, as npx does, and
// connects a client.
func testNPM(t *testing.T, dist string) {
	testkit.Nightly(t, "installs packages from npm")
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("there is no npx: install the package npm")
	}
	registry := httptest.NewServer(npmRegistry(t, dist))
	defer registry.Close()
	home, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte("{\n  \"numStartups\": 3\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	start := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, npx, append([]string{"--yes", "ken"}, args...)...)
		cmd.Dir = work
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "npm_config_registry=" + registry.URL, "npm_config_cache=" + filepath.Join(home, ".npm"), "npm_config_update_notifier=false", "npm_config_loglevel=error"}
		return cmd
	}
	if out, err := start("connect", "claude", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("npx ken connect claude: %v\n%s", err, out)
	}
	var client struct {
		MCPServers map[string]struct{ Command string }
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(home, ".claude.json")), &client); err != nil {
		t.Fatal(err)
	}
	program := client.MCPServers["ken"].Command
	if strings.Contains(program, "_npx") {
		t.Errorf("the client starts %s, which npx may delete", program)
	}
	sayVersion(t, exec.Command(program, "--version"))
	sayVersion(t, start("--version"))

	// The launcher passes exit statuses on.
	var exit *exec.ExitError
	if err := start("no-such-command").Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("npx ken no-such-command: %v, want exit status 2", err)
	}
}

// npmRegistry serves the npm packages of a release.
func npmRegistry(t *testing.T, dist string) http.Handler {
	t.Helper()
	tarballs, err := filepath.Glob(filepath.Join(dist, "npm-*.tgz"))
	if err != nil || len(tarballs) != 2 {
		t.Fatalf("npm packages: %q, want the command and one for this platform", tarballs)
	}
	mux := http.NewServeMux()
	for _, tarball := range tarballs {
		data := readFile(t, tarball)
		dir := unpack(t, bytes.NewReader(data))
		var about map[string]any
		if err := json.Unmarshal(readFile(t, filepath.Join(dir, "package", "package.json")), &about); err != nil {
			t.Fatal(err)
		}
		if about["scripts"] != nil {
			t.Errorf("%v runs scripts: %v", about["name"], about["scripts"])
		}
		name := about["name"].(string)
		sum := sha512.Sum512(data)
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			about["dist"] = map[string]string{"tarball": "http://" + r.Host + "/-/" + path.Base(tarball), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": testVersion}, "versions": map[string]any{testVersion: about}})
		})
		mux.HandleFunc("GET /-/"+path.Base(tarball), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	return mux
}

// testImage checks the image's layout, and runs it as a container does: its files
// as a root folder that cannot be written, as its user.
func testImage(t *testing.T, dist string) {
	name := artefact(t, dist, "*_image.tar")
	blobs := map[string][]byte{}
	files := tar.NewReader(bytes.NewReader(readFile(t, name)))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(files); err != nil {
			t.Fatal(err)
		}
	}
	type descriptor struct {
		Digest string
		Size   int
	}
	blob := func(d descriptor, into any) []byte {
		t.Helper()
		data := blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if sum := sha256.Sum256(data); d.Digest != fmt.Sprintf("sha256:%x", sum) || d.Size != len(data) {
			t.Fatalf("blob %s has %d bytes, want %d, and the digest %x", d.Digest, len(data), d.Size, sum)
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var index, platforms struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	blob(index.Manifests[0], &platforms)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(platforms.Manifests[0], &manifest)
	var config struct {
		Config struct {
			User, WorkingDir string
			Entrypoint, Cmd  []string
			Env              []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(manifest.Config, &config)
	layer := blob(manifest.Layers[0], nil)
	plain, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, plain); err != nil || config.RootFS.DiffIDs[0] != fmt.Sprintf("sha256:%x", sum.Sum(nil)) {
		t.Errorf("the layer is not the one that the configuration names: %v", err)
	}
	if user, _, _ := strings.Cut(config.Config.User, ":"); user == "" || user == "0" || user == "root" {
		t.Errorf("the image runs as %q", config.Config.User)
	}
	root := unpack(t, bytes.NewReader(layer))
	args := append([]string{root, config.Config.User, config.Config.Entrypoint[0]}, config.Config.Env...)
	inNamespace(t, containerScript, args...)
}

// containerScript gets the files of the image, its user, its program and its
// environment.
const containerScript = `
root=$1 user=$2 program=$3
shift 3
environment=$*
owner=${user%:*}
mount --bind $root $root
mount -t tmpfs -o uid=$owner,gid=$owner,mode=0700 tmpfs $root/var/lib/ken
mount -t tmpfs -o mode=1777 tmpfs $root/tmp
mount -o remount,bind,ro $root
in_root() { env -i $environment /usr/sbin/chroot --userspec=$user $root $program "$@"; }
in_root --version | grep -q '^ken .*(commit '
if in_root man /etc/pages; then echo "the root folder can be written"; exit 1; fi
mkfifo $TMPDIR/said
in_root serve --addr 127.0.0.1:0 >$TMPDIR/said 2>$TMPDIR/log &
ken=$!
exec 3<$TMPDIR/said
read -r link <&3 || { cat $TMPDIR/log; exit 1; }
url=${link%%/\?*}
status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
test "$(status $url/api/v1/catalog)" = 401
test "$(status -H "Authorization: Bearer $(cat $root/var/lib/ken/state/token)" $url/api/v1/catalog)" = 200
test "$(status -H "Authorization: Bearer $(cat $root/var/lib/ken/state/token)" $url/docs/mcp.html)" = 200
kill $ken
wait $ken || true
`

func testFormula(t *testing.T, dist string) {
	formula := string(readFile(t, filepath.Join(dist, "ken.rb")))
	archive := artefact(t, dist, "ken_*.tar.gz")
	sum := sha256.Sum256(readFile(t, archive))
	for _, want := range []string{`version "` + testVersion + `"`, `url "https://example.com/ken/` + filepath.Base(archive) + `"`, `sha256 "` + hex.EncodeToString(sum[:]) + `"`} {
		if !strings.Contains(formula, want) {
			t.Errorf("the formula has no %s:\n%s", want, formula)
		}
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		if out, err := exec.Command(ruby, "-c", filepath.Join(dist, "ken.rb")).CombinedOutput(); err != nil {
			t.Errorf("ruby: %v\n%s", err, out)
		}
	}
}
