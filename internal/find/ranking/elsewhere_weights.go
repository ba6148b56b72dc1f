package ranking

// Made by training/gate.py.
var elsewhereWeights = [elsewhereFeatures]float64{
	elsewhereBias:       2.039,
	elsewhereBase:       0.694,
	elsewhereSimilarity: 7.245,
	elsewhereElsewhere:  -10.07,
	elsewhereCount:      -2.761,
}

var sizedWeights = [sizedFeatures]float64{
	sizedSmall: 4.009,
	sizedBoth:  1.224,
}
