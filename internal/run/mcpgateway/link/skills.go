package link

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/know/source/mcpskill"
)

// A server may have skills (SEP-2640). Only their entries are listed; files are
// read when a skill is used.

type skillParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

// knowSkills lets the SDK send requests about skills.
func knowSkills(c *mcp.Client) error {
	return mcp.AddSendingCustomMethod[*skillParams, *taskResult](c, "skills/list")
}

// listSkills lists the skills of a server that announces them. Their files are
// resources, so a server without resources has none.
func (l *Link) listSkills(ctx context.Context, out *Lists) error {
	if !l.info.HasResources {
		out.Notes = append(out.Notes, "the server announces skills but no resources, so its skills cannot be read")
		return nil
	}
	c := collector[mcpskill.Entry]{what: "skill", limit: l.cfg.MaxTools, key: func(e *mcpskill.Entry) string { return e.URI }, bad: (*mcpskill.Entry).Bad}
	var err error
	out.Skills, err = optional(ctx, l, out, &c, skillPage)
	return err
}

func skillPage(ctx context.Context, session *mcp.ClientSession, cursor string) ([]*mcpskill.Entry, string, error) {
	res, err := mcp.CallCustomMethod[*skillParams, *taskResult](ctx, session, "skills/list", &skillParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Skills     []*mcpskill.Entry `json:"skills"`
		NextCursor string            `json:"nextCursor"`
	}
	if err := json.Unmarshal(res.raw, &page); err != nil {
		return nil, "", fmt.Errorf("the list cannot be read: %w", err)
	}
	return page.Skills, page.NextCursor, nil
}
