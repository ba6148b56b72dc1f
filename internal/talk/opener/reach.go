package opener

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ken/internal/config"
	"ken/internal/talk/provider"
	"ken/internal/untrusted"
)

// reachFor is how long a model's server has to answer the check.
const reachFor = 3 * time.Second

// Reach describes the model that answers in a chat, or returns an error that says
// why none can. It asks the model's server for its list of models, which detects
// an unreachable server, a rejected key and an unknown model name.
func (o *Opener) Reach(ctx context.Context) (string, error) {
	now := o.cfg.Settings()
	m, err := o.answering(now)
	switch {
	case errors.Is(err, ErrNoModel):
		return "", nil
	case err != nil:
		return now.Model, err
	}
	if err := o.tableFault(); err != nil {
		return now.Model, err
	}
	if m.again == nil {
		return "the program's own model", nil
	}
	if m.provider.Key != "" {
		if _, err := o.key(m.provider); err != nil {
			return now.Model, fmt.Errorf("%s needs the key %s: %w", m.provider.Name, m.provider.Key, err)
		}
	}
	if err := m.reach(ctx); err != nil {
		return now.Model, err
	}
	return fmt.Sprintf("%s answers at %s, over %s; a window of %d tokens", now.Model, m.provider.URL, m.provider.Wire, m.row.Window), nil
}

// reach returns why the model's server will not answer, as far as that can be
// found out without a paid request.
func (m opened) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	key, err := m.cfg.Secret(ctx)
	if err != nil {
		return err
	}
	path, header := listOfModels(m.provider, key)
	cfg := m.cfg
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	ids, err := provider.List(ctx, cfg, path, header)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", m.ref, m.provider.URL, err)
	}
	if m.provider.Wire != config.WireChat && m.provider.Wire != config.WireResponses || len(ids) == 0 || slices.Contains(ids, m.name) || slices.Contains(ids, m.name+":latest") {
		return nil
	}
	return fmt.Errorf("%s: the server at %s does not list this model; it lists %s", m.ref, m.provider.URL, untrusted.Line(strings.Join(ids, ", "), 200))
}

// listOfModels returns where a provider lists its models, and how the key is
// sent there.
func listOfModels(p config.Provider, key string) (path string, header http.Header) {
	header = http.Header{}
	set := func(name, value string) {
		if key != "" {
			header.Set(name, value)
		}
	}
	switch p.Wire {
	case config.WireMessages:
		header.Set("Anthropic-Version", "2023-06-01")
		set("X-Api-Key", key)
		return "/v1/models", header
	case config.WireGemini:
		set("X-Goog-Api-Key", key)
		if base := strings.TrimRight(p.URL, "/"); strings.HasSuffix(base, "/v1beta") || strings.HasSuffix(base, "/v1") {
			return "/models", header
		}
		return "/v1beta/models", header
	}
	set("Authorization", "Bearer "+key)
	return "/models", header
}

// Doubt returns a warning about a valid setting that was just written
// but does not work yet, or "". The user may be about to add what is missing.
func (o *Opener) Doubt(ctx context.Context, key string) string {
	if key != "model" && key != "providers" || o.cfg.Settings().Model == "" {
		return ""
	}
	if _, err := o.Reach(ctx); err != nil {
		return err.Error() + "; until this is fixed, ken chat runs commands only"
	}
	return ""
}
