package rows

// A rowKey is a key that rows have, whatever its spelling.
type rowKey uint8

const (
	KeyUnknown rowKey = iota
	keyID
	keyKind
	KeyName
	KeyDisplayName
	KeyDescription
	keyCategory
	keyTags
	keyAliases
	keyParameters
	KeySchema
	KeyAnnotations
	keyRequiredTools
	keyRequiredSecrets
	keyRequiredBins
	keyRequiredPlatforms
	keyPermissions
	keyAvailable
	keyUnavailable
	keySideEffects
	keyRun
	keyTriggers
	keyMigrations
	keyPriority
	keyTokenBudget
	keyMaxChars
	keyVersion
	keyServer
	keyBody
	keyUsage
	KeyCount
)

// KeyOf folds the spellings of a key (input_schema, inputSchema) into one.
func KeyOf(raw []byte) rowKey {
	var buf [24]byte
	folded := buf[:0]
	for _, c := range raw {
		switch {
		case c == '_' || c == '-':
			continue
		case len(folded) == len(buf):
			return KeyUnknown
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		folded = append(folded, c)
	}
	switch string(folded) {
	case "id":
		return keyID
	case "kind":
		return keyKind
	case "name":
		return KeyName
	case "displayname", "title":
		return KeyDisplayName
	case "description":
		return KeyDescription
	case "category":
		return keyCategory
	case "tags":
		return keyTags
	case "aliases":
		return keyAliases
	case "parameters":
		return keyParameters
	case "inputschema", "fullschema":
		return KeySchema
	case "annotations", "effects":
		return KeyAnnotations
	case "requiredtools", "dependson":
		return keyRequiredTools
	case "requiredsecrets":
		return keyRequiredSecrets
	case "requiredbins":
		return keyRequiredBins
	case "requiredplatforms":
		return keyRequiredPlatforms
	case "permissions":
		return keyPermissions
	case "available":
		return keyAvailable
	case "unavailable":
		return keyUnavailable
	case "hassideeffects":
		return keySideEffects
	case "run":
		return keyRun
	case "triggers":
		return keyTriggers
	case "migrations":
		return keyMigrations
	case "priority":
		return keyPriority
	case "tokenbudget":
		return keyTokenBudget
	case "maxchars":
		return keyMaxChars
	case "version":
		return keyVersion
	case "server":
		return keyServer
	case "body", "fullcontent":
		return keyBody
	case "usage":
		return keyUsage
	}
	return KeyUnknown
}

// ofMCP reports whether the key is one that an MCP tool has. A server's word
// must not set what is Ken's own, such as how a call runs.
func (k rowKey) ofMCP() bool {
	switch k {
	case KeyName, KeyDisplayName, KeyDescription, KeySchema, KeyAnnotations:
		return true
	}
	return false
}
