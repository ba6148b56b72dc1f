package source

import "ken/capability"

// Channels: places where people are reached, listed in channels.yaml. A
// channel is named by its platform and always belongs to communication.

func channelFormat() format {
	return format{name: "channel", claims: isChannelList, limit: listBytes, read: readChannels}
}

func isChannelList(p string, _ []byte) bool { return isListFile(p, "channels") }

func readChannels(u *unit) {
	for _, e := range u.listEntries("channels", false) {
		if r, ok := u.entryFields(e, "channel"); ok {
			platform := e.name(r, "platform", "name")
			if platform == "" {
				u.fault("no-name", u.path, e.line, "the channel does not say its platform", "add platform: and the name of the service")
				continue
			}
			c := &capability.Capability{
				ID:   capability.MakeID(capability.KindChannel, platform),
				Kind: capability.KindChannel, Name: platform, Category: "communication",
			}
			readListed(r, c)
			u.keepField(c, r, "category") // a channel is communication, whatever else it says
			u.keepField(c, r, "capabilities")
			u.addListed(c, r, e)
		}
	}
}
