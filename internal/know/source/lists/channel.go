package lists

import (
	"ken/capability"
	"ken/internal/know/source/format"
)

// Channels: places where people are reached, listed in channels.yaml. A
// channel is named by its platform and always belongs to communication.

// ChannelFormat returns the format of channels.yaml.
func ChannelFormat() format.Format {
	return format.Format{Name: "channel", Claims: isChannelList, Limit: format.ListLimit, Read: readChannels}
}

func isChannelList(p string, _ []byte) bool { return format.IsListFile(p, "channels") }

func readChannels(u *format.Unit) {
	for _, e := range u.ListEntries("channels", false) {
		if r, ok := u.EntryFields(e, "channel"); ok {
			platform := e.Name(r, "platform", "name")
			if platform == "" {
				u.Fault("no-name", u.Path, e.Line, "the channel does not say its platform", "add platform: and the name of the service")
				continue
			}
			c := &capability.Capability{
				ID:   capability.MakeID(capability.KindChannel, platform),
				Kind: capability.KindChannel, Name: platform, Category: "communication",
			}
			format.ReadListed(r, c)
			u.KeepField(c, r, "category") // a channel is communication, whatever else it says
			u.KeepField(c, r, "capabilities")
			u.AddListed(c, r, e)
		}
	}
}
