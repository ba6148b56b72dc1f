// Package markdown reads the formats written in Markdown: skills, capability
// cards and the registries that list them, slash commands, and the documents
// about the whole instance.
package markdown
