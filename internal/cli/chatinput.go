package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	mostInput = 64 << 20        // bytes of a message from standard input
	inputWait = 3 * time.Second // before it is said that input is waited for
)

// message is what -p says: its own words, with what comes through a pipe below
// them, or all of standard input. Commands take no input.
func (c *chatCommand) message(ctx context.Context, text string) (string, error) {
	if text == "-" {
		text, err := c.readAll(ctx)
		if err == nil && strings.TrimSpace(text) == "" {
			err = usageError{errors.New("-p has no message: standard input is empty")}
		}
		return text, err
	}
	if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "/") || !c.piped() {
		return text, nil
	}
	input, err := c.readAll(ctx)
	if err != nil || strings.TrimSpace(input) == "" {
		return text, err
	}
	fence := "```"
	for strings.Contains(input, fence) {
		fence += "`"
	}
	return fmt.Sprintf("%s\n\nStandard input:\n\n%s\n%s%s\n", strings.TrimRight(text, "\n"), fence, ended(input), fence), nil
}

// piped reports whether standard input was given to be read: a pipe or a file.
func (c *chatCommand) piped() bool {
	f, ok := c.in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeNamedPipe != 0)
}

// readAll reads standard input, or until ctx is done: then the reader that is
// left behind goes with the process. It says so where nothing comes.
func (c *chatCommand) readAll(ctx context.Context) (string, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(c.in, mostInput+1))
		done <- read{data, err}
	}()
	late := time.NewTimer(inputWait)
	defer late.Stop()
	for {
		select {
		case got := <-done:
			switch {
			case got.err != nil:
				return "", fmt.Errorf("read the message: %w", got.err)
			case len(got.data) > mostInput:
				return "", fmt.Errorf("read the message: longer than %d bytes; save it as a file in the workspace and name the file", mostInput)
			}
			return string(got.data), nil
		case <-late.C:
			fmt.Fprintln(c.err, "ken: reading standard input to its end; < /dev/null leaves it alone")
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
