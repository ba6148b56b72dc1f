package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const sumsName = "SHA256SUMS"

func digestOf(name string) (digest string, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// each calls do for every file of the release so far, by name.
func (r *release) each(do func(name, digest string)) error {
	list, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, entry := range list {
		digest, _, err := digestOf(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		do(entry.Name(), digest)
	}
	return nil
}

// checksums writes a file that sha256sum -c reads, about every other file.
func (r *release) checksums() error {
	var b strings.Builder
	if err := r.each(func(name, digest string) { fmt.Fprintf(&b, "%s  %s\n", digest, name) }); err != nil {
		return err
	}
	return r.put(sumsName, []byte(b.String()))
}

// signature is what a signature is for: one made for something else does not
// count.
const signature = "ken-release"

// sign signs the checksums, and so every file, with the SSH key that the
// environment names.
func (r *release) sign() error {
	key := os.Getenv("RELEASE_KEY")
	if key == "" {
		r.say("not signed: set RELEASE_KEY to the file of an SSH private key to sign %s", sumsName)
		return nil
	}
	if _, err := r.output(r.out, "ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", signature, sumsName); err != nil {
		return err
	}
	r.say("write %s.sig", sumsName)
	return nil
}
