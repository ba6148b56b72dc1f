const INTENT_TOOL_MAP = {
	PLAN: [],
	ANALYZE: ["read_file"],
	DEBUG: ["read_file"],
	CODE: ["write_to_file", "apply_diff"],
	WRITE_FILE: ["write_to_file"],
	READ_FILE: ["read_file"],
	EXECUTE: ["run_command"],
}
