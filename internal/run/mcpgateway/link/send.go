//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What stands between the SDK's client and the requests it sends.

// probeBriefly limits the time of the request for the newest protocol, so that
// there is enough left for the older handshake.
func (l *Link) probeBriefly(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, req)
		}
		limit := probeTime
		if l.cfg.URL != "" && !l.cfg.SSE {
			limit = probeLogin
		}
		if deadline, ok := ctx.Deadline(); ok {
			limit = min(limit, time.Until(deadline)/2)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx, method, req)
	}
}

// withoutRoots keeps servers that agree on one set of capabilities for all calls
// from asking for roots that do not exist, and from answering with tasks.
func (l *Link) withoutRoots(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p.Capabilities != nil {
			if len(l.cfg.Roots) == 0 {
				p.Capabilities.Roots, p.Capabilities.RootsV2 = mcp.RootCapabilities{}, nil
			}
			p.Capabilities.Extensions = maps.Clone(p.Capabilities.Extensions)
			delete(p.Capabilities.Extensions, tasksExtension) // which the older protocols do not have
		}
		return next(ctx, method, req)
	}
}

// wholeKey is where wholeList puts the tools of a page. No server can: it is
// written over.
const wholeKey = "ken/whole"

// wholeList notes all tools of a page in its result, before the SDK takes some
// away without a word. The note stays with a page that the SDK keeps.
func wholeList(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && err == nil && list != nil {
			if list.Meta == nil {
				list.Meta = mcp.Meta{}
			}
			list.Meta[wholeKey] = slices.Clone(list.Tools)
		}
		return res, err
	}
}

// dropped returns the tools that the SDK took out of a page. It keeps the order.
func dropped(res *mcp.ListToolsResult) (out []*mcp.Tool) {
	whole, _ := res.Meta[wholeKey].([]*mcp.Tool)
	left := res.Tools
	for _, t := range whole {
		if len(left) > 0 && left[0] == t {
			left = left[1:]
		} else {
			out = append(out, t)
		}
	}
	return out
}
