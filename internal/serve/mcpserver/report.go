//lint:file-ignore SA1019 clients of before 2026-07-28 have what that version gave up

package mcpserver

import (
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A reporter passes on how far a call is. What it cannot send is lost: the
// client has gone, and the result tells the same.
type reporter struct {
	ctx   context.Context // of the request, whose stream the news travel on
	ss    *mcp.ServerSession
	token any // nil: the client wants no progress
}

// reporter returns what a call reports to, nil where the client wants no news.
func (ep *endpoint) reporter(ctx context.Context, sess *session, ss *mcp.ServerSession, p mcp.RequestParams) io.Writer {
	token := p.GetProgressToken()
	if token == nil {
		_, wanted := p.GetMeta()[mcp.MetaKeyLogLevel]
		sess.mu.Lock()
		wanted = wanted || sess.logging
		sess.mu.Unlock()
		if !wanted {
			return nil
		}
	}
	return &reporter{ctx, ss, token}
}

// Write takes output, which the result holds.
func (r *reporter) Write(p []byte) (int, error) { return len(p), nil }

// Progress sends a notification where the client asked for them.
func (r *reporter) Progress(done, total float64, message string) {
	if r.token != nil {
		_ = r.ss.NotifyProgress(r.ctx, &mcp.ProgressNotificationParams{ProgressToken: r.token, Progress: done, Total: total, Message: message})
	}
}

// Note sends a log line of the level that the client asked for, or above.
func (r *reporter) Note(level, logger string, data json.RawMessage) {
	_ = r.ss.Log(r.ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: logger, Data: data})
}
