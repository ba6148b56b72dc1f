package manageapi

import (
	"strings"

	"ken/internal/secret"
	"ken/internal/serve/httpapi/wire"
)

type (
	secretList struct {
		Secrets []secret.Item `json:"secrets"`
	}
	secretValue struct {
		Value string `json:"value"`
	}
)

func (s *server) secrets(*wire.Request) (any, error) {
	items, err := s.cfg.Secrets.List()
	if err != nil {
		return nil, err
	}
	return secretList{append([]secret.Item{}, items...)}, nil
}

func (s *server) setSecret(r *wire.Request) (any, error) {
	var in secretValue
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := secret.CheckName(name); err != nil {
		return nil, err
	}
	v, err := secret.ReadValue(strings.NewReader(in.Value))
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Record(r.Context(), r.Who, "secret", "set", name, nil); err != nil {
		return nil, err
	}
	if err := s.cfg.Secrets.Set(name, v); err != nil {
		return nil, err
	}
	return nil, s.cfg.Changed(r.Context())
}

func (s *server) removeSecret(r *wire.Request) (any, error) {
	name := r.PathValue("name")
	if err := s.cfg.Record(r.Context(), r.Who, "secret", "remove", name, nil); err != nil {
		return nil, err
	}
	if err := s.cfg.Secrets.Remove(name); err != nil {
		return nil, err
	}
	return nil, s.cfg.Changed(r.Context())
}
