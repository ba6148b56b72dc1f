package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"time"

	"filippo.io/age"

	"ken/capability"
	"ken/internal/wholefile"
)

const (
	fileVersion = 1
	fileLimit   = 16 << 20
)

// document is what secrets.age holds.
type document struct {
	Version int              `json:"version"`
	Secrets map[string]entry `json:"secrets"`
}

// A stamp tells one state of a file from another without reading it.
type stamp struct {
	size int64
	mod  time.Time
	id   uint64
}

func stampOf(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), info.ModTime(), fileID(info)}, nil
}

// broken is the error for a store that cannot be used; it is never replaced by
// an empty one.
func (s *Store) broken(err error, fix string) error {
	return &capability.Error{Kind: capability.Unavailable, Op: "read secrets", Target: s.path(storeFile), Err: err, Fix: fix}
}

// restoreFix returns the fix for a store that cannot be read.
func (s *Store) restoreFix() string {
	return fmt.Sprintf("put %s and %s back from a backup, or move both aside and set the secrets again", storeFile, keyFile)
}

// readPrivate reads a file that only its owner may see.
func (s *Store) readPrivate(name string, limit int64) ([]byte, error) {
	path := s.path(name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, s.broken(fmt.Errorf("%s is not a plain file", path), "move it away and put the file itself there")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, &capability.Error{
			Kind: capability.Denied, Op: "read secrets", Target: path,
			Err: fmt.Errorf("mode %04o lets others read or change the file", mode),
			Fix: "chmod 600 " + path + ", and replace the secrets if others use this machine",
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = s.broken(fmt.Errorf("%s is larger than %d bytes", path, limit), s.restoreFix())
	}
	return data, err
}

// identities reads the key. A file that cannot be parsed is not shown: it may
// be a key all the same.
func (s *Store) identities() ([]age.Identity, error) {
	data, err := s.readPrivate(keyFile, 64<<10)
	if err != nil {
		return nil, err
	}
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, s.broken(fmt.Errorf("%s holds no key that can be read", s.path(keyFile)), s.restoreFix())
	}
	return ids, nil
}

// read decrypts the file.
func (s *Store) read() (map[string]entry, error) {
	sealed, err := s.readPrivate(storeFile, fileLimit)
	if err != nil {
		return nil, s.wrap(err)
	}
	ids, err := s.identities()
	if errors.Is(err, os.ErrNotExist) {
		return nil, s.broken(fmt.Errorf("key file %s is missing", s.path(keyFile)), s.restoreFix())
	}
	if err != nil {
		return nil, s.wrap(err)
	}
	plain, err := age.Decrypt(bytes.NewReader(sealed), ids...)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return nil, s.broken(fmt.Errorf("file was encrypted with another key than %s", s.path(keyFile)), s.restoreFix())
	}
	if err != nil {
		return nil, s.broken(fmt.Errorf("file is damaged: %w", err), s.restoreFix())
	}
	data, err := io.ReadAll(io.LimitReader(plain, fileLimit))
	if err != nil {
		return nil, s.broken(fmt.Errorf("file is damaged: %w", err), s.restoreFix())
	}
	var doc document
	// The error of the decoder quotes what it read, so it is not passed on.
	if json.Unmarshal(data, &doc) != nil {
		return nil, s.broken(errors.New("content is not the JSON that Ken writes"), s.restoreFix())
	}
	if doc.Version != fileVersion {
		return nil, s.broken(fmt.Errorf("file has version %d, and this program reads %d", doc.Version, fileVersion), "use the version of Ken that wrote it")
	}
	return doc.Secrets, nil
}

// wrap leaves our own errors as they are.
func (s *Store) wrap(err error) error {
	if _, ours := errors.AsType[*capability.Error](err); ours {
		return err
	}
	return s.broken(err, "see that it can be read")
}

const lockWait = 10 * time.Second

// lock keeps other writers waiting, in this process and in others.
func (s *Store) lock() (unlock func(), err error) {
	path := s.path(lockFile)
	unlock, err = wholefile.Lock(path, lockWait)
	if err == nil {
		return unlock, nil
	}
	failure := &capability.Error{Kind: capability.Unavailable, Op: "write secrets", Target: path, Err: err, Fix: "see that its folder can be written"}
	switch {
	case errors.Is(err, wholefile.ErrHeld):
		failure.Kind, failure.Fix = capability.Conflict, "try again when the other has ended"
	case errors.Is(err, errors.ErrUnsupported):
		failure.Fix = "keep the folder on a file system that has locks"
	}
	return nil, failure
}

// change edits the file under its lock. The caller has the mutex.
func (s *Store) change(edit func(map[string]entry) error) error {
	if s.dir == "" {
		return &capability.Error{Kind: capability.Unavailable, Op: "write secrets", Err: errors.New("missing folder"), Fix: "set KEN_HOME"}
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.unwritable(err)
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Two writes within one tick of the clock look alike from outside.
	s.stamp = stamp{}
	if err := s.refresh(); err != nil {
		return err
	}
	secrets := maps.Clone(s.secrets)
	if secrets == nil {
		secrets = map[string]entry{}
	}
	if err := edit(secrets); err != nil {
		return err
	}
	if err := s.write(secrets); err != nil {
		return err
	}
	s.stamp = stamp{}
	return s.refresh()
}

func (s *Store) unwritable(err error) error {
	return &capability.Error{
		Kind: capability.Unavailable, Op: "write secrets", Target: s.path(storeFile), Err: err,
		Fix: "see that " + s.dir + " can be written and has room",
	}
}

// write replaces the file as a whole, so that a reader sees the old one or the
// new one.
func (s *Store) write(secrets map[string]entry) error {
	recipient, err := s.recipient()
	if err != nil {
		return err
	}
	plain, err := json.Marshal(document{Version: fileVersion, Secrets: secrets})
	if err != nil {
		return s.unwritable(errors.New("the values cannot be written as JSON"))
	}
	if len(plain) > fileLimit/2 {
		return s.unwritable(fmt.Errorf("all secrets together have more than %d bytes", fileLimit/2))
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipient)
	if err != nil {
		return s.unwritable(err)
	}
	if _, err := w.Write(plain); err != nil {
		return s.unwritable(err)
	}
	if err := w.Close(); err != nil {
		return s.unwritable(err)
	}
	if err := wholefile.Write(s.path(storeFile), sealed.Bytes(), 0o600); err != nil {
		return s.unwritable(err)
	}
	return nil
}

// recipient returns the public half of the key, and makes the key with the first
// secret. A store without its key is never given a new one.
func (s *Store) recipient() (age.Recipient, error) {
	ids, err := s.identities()
	if errors.Is(err, os.ErrNotExist) {
		return s.makeKey()
	}
	if err != nil {
		return nil, s.wrap(err)
	}
	for _, id := range ids {
		switch id := id.(type) {
		case *age.X25519Identity:
			return id.Recipient(), nil
		case *age.HybridIdentity:
			return id.Recipient(), nil
		}
	}
	return nil, s.broken(fmt.Errorf("%s holds no key that Ken can write with", s.path(keyFile)), s.restoreFix())
}

func (s *Store) makeKey() (age.Recipient, error) {
	if _, err := os.Lstat(s.path(storeFile)); err == nil {
		return nil, s.broken(fmt.Errorf("key file %s is missing", s.path(keyFile)), s.restoreFix())
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, s.unwritable(err)
	}
	text := fmt.Sprintf("# The key to %s. Both files together reveal the secrets.\n# public key: %s\n%s\n", storeFile, id.Recipient(), id)
	if err := wholefile.Write(s.path(keyFile), []byte(text), 0o600); err != nil {
		return nil, s.unwritable(err)
	}
	return id.Recipient(), nil
}
