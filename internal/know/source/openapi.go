package source

func openapiFormat() format { return format{name: "openapi"} }
