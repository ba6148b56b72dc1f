package source

import (
	"ken/internal/know/source/catalogfile"
	"ken/internal/know/source/extension"
	"ken/internal/know/source/format"
	"ken/internal/know/source/lists"
	"ken/internal/know/source/manifest"
	"ken/internal/know/source/markdown"
	"ken/internal/know/source/openapi"
)

// formats lists every format, most particular first.
func formats() []format.Format {
	return []format.Format{
		manifest.Format(),
		extension.Format(),
		markdown.SkillFormat(),
		markdown.DocumentFormat(),
		markdown.RegistryFormat(),
		markdown.CommandFormat(),
		markdown.CardFormat(),
		lists.ChannelFormat(),
		lists.ExtensionListFormat(),
		lists.PresetFormat(),
		catalogfile.JSONLFormat(),
		openapi.FolderFormat(),
		openapi.Format(),
		catalogfile.MCPListFormat(),
	}
}
