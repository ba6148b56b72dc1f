package policy

import (
	"ken/capability"
	"ken/internal/address"
)

// Risk grades a call, 0–100, as the sum of its parts. More in the arguments
// never makes it less.
type Risk struct {
	Score       uint8 `json:"score"`
	Effect      uint8 `json:"effect"`      // what the call does
	Trust       uint8 `json:"trust"`       // who brought the capability
	Reach       uint8 `json:"reach"`       // what the arguments touch
	Destructive uint8 `json:"destructive"` // whether it can be undone
}

// MaxRisk is the highest score of a [Risk].
const MaxRisk = 100

func (r Risk) summed() Risk {
	r.Score = uint8(min(MaxRisk, int(r.Effect)+int(r.Trust)+int(r.Reach)+int(r.Destructive)))
	return r
}

// riskOf grades a call as far as it can be told without arguments.
func riskOf(c *Capability) Risk {
	var r Risk
	switch c.Class {
	case Meta:
		return Risk{}
	case Read:
		r.Effect = 5
	case Write, Edit:
		r.Effect = 25
	case Exec:
		r.Effect = 40
	case Network:
		r.Effect = 30
	default:
		r.Effect = MaxRisk
	}
	switch c.Trust {
	case capability.TrustBuiltin:
	case capability.TrustUser:
		r.Trust = 5
	case capability.TrustWorkspace:
		r.Trust = 15
	default:
		r.Trust = 20
	}
	if c.Destructive {
		r.Destructive = 25
	}
	return r.summed()
}

// with adds what the arguments touch.
func (r Risk) with(f *Facts, seen *observation) Risk {
	reach := 0
	if seen.outsideRead || seen.outsideWrite {
		reach += 20
	}
	if seen.protected || seen.secret {
		reach += 20
	}
	if len(f.Paths) > 10 {
		reach += 5
	}
	if f.Opaque != "" {
		reach += 20
	}
	if len(f.Hosts) > 0 {
		reach += 5
	}
	for _, h := range f.Hosts {
		if address.Near(h) {
			reach += 15
			break
		}
	}
	r.Reach = uint8(min(40, reach))
	if seen.destructive {
		r.Destructive = 25
	}
	return r.summed()
}
