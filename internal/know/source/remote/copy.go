package remote

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ken/internal/know/source/safefs"
	"ken/internal/wholefile"
)

// A remoteHeader is what is known about a state of a remote address. Together
// with the content it is one file: a line of JSON, then the content as it
// came, so that both are replaced in one step.
type remoteHeader struct {
	Version   int       `json:"v"`
	SHA256    string    `json:"sha256"`
	First     string    `json:"first"` // the hash that was seen first
	FirstSeen time.Time `json:"firstSeen"`
	Fetched   time.Time `json:"fetched"`
	ETag      string    `json:"etag,omitempty"`
	Modified  string    `json:"lastModified,omitempty"`
	Name      string    `json:"name"` // the file that it is read as
}

const (
	remoteCopyVersion = 1
	maxRemoteHeader   = 16 << 10
)

// A remoteCopy is a state of a remote address with its content, in memory or
// in an open file.
type remoteCopy struct {
	remoteHeader
	checked time.Time // when the address last held this content
	body    *safefs.Content
	file    *os.File // what body reads from, if not memory
}

func (c *remoteCopy) close() {
	if c != nil && c.file != nil {
		_ = c.file.Close() // it was only read
	}
}

func hashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// copyPath names the file for an address by a hash, so that nothing of the
// address shows in it.
func copyPath(dir, address string) string {
	return filepath.Join(dir, hashBytes([]byte(address))[:24]+".copy")
}

// readCopy opens the last good copy. What does not hold the content it claims
// is an error; that there is none is fs.ErrNotExist.
func readCopy(name string) (*remoteCopy, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	c, err := checkCopy(f)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return c, nil
}

func checkCopy(f *os.File) (*remoteCopy, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRemoteBytes+maxRemoteHeader {
		return nil, errors.New("not a copy written by Ken")
	}
	in := bufio.NewReaderSize(f, maxRemoteHeader)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, errors.New("first line is incomplete or too long")
	}
	c := &remoteCopy{file: f, checked: info.ModTime().UTC()}
	if json.Unmarshal(line, &c.remoteHeader) != nil || c.Version != remoteCopyVersion {
		return nil, errors.New("invalid header or unsupported version in the first line")
	}
	start := int64(len(line))
	h := sha256.New()
	size, err := io.Copy(h, in)
	if err != nil {
		return nil, err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != c.SHA256 {
		return nil, fmt.Errorf("content has the hash %s, but the first line says %s", got, c.SHA256)
	}
	c.body = &safefs.Content{ReaderAt: io.NewSectionReader(f, start, size), Size: size, Mod: c.Fetched}
	return c, nil
}

// memoryCopy holds content that is not, or not yet, on disk.
func memoryCopy(h remoteHeader, data []byte) *remoteCopy {
	return &remoteCopy{remoteHeader: h, checked: h.Fetched, body: &safefs.Content{ReaderAt: bytes.NewReader(data), Size: int64(len(data)), Mod: h.Fetched}}
}

// writeCopy replaces the last good copy in one step, for this user only.
func writeCopy(name string, h remoteHeader, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return wholefile.Write(name, append(append(head, '\n'), data...), 0o600)
}
