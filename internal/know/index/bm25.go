package index

// How BM25 weighs the fields. The lengths are those of usual capabilities
// rather than of the catalog at hand: what one capability is worth must not
// depend on its neighbours, or each change would touch everything.
var (
	fieldWeight = [fields]float32{FieldName: 4.5, FieldText: 0.8, fieldParams: 1, fieldTags: 0.4, FieldParamText: 0.4}
	fieldLength = [fields]float32{FieldName: 3, FieldText: 12.5, fieldParams: 4.3, fieldTags: 5, FieldParamText: 26}
	fieldSlope  = [fields]float32{FieldName: 0.2, FieldText: 0.55, fieldParams: 0.7, fieldTags: 0.25, FieldParamText: 0.7}
)

// Saturation is how soon more of the same word stops counting.
const Saturation = 1.2

func impact(packed uint32, norm *[fields]float32) float32 {
	var weight float32
	for f := range fields {
		if n := Count(packed, f); n > 0 {
			weight += fieldWeight[f] * n * norm[f]
		}
	}
	return weight * (Saturation + 1) / (weight + Saturation)
}
