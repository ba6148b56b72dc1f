package index

// Made by go test -run TestFit -fit from the training sets; see fit_test.go.
var (
	rankWeights   = [features]float32{3.13, 1.31, 1.67, 0.0772, 1.31, 0, 0, 0.577, 0.748, 1.96, 1}
	gateWeights   = [gates]float64{-1.38, -0.812, -0.69, 0.776, 1.01, -4.39, -1.67, -0.97, 1.24, 0.778, -0.499, 2.33, 2.17, 0.987, 0.582, 0.332, 0.548, 0.635, 0}
	chanceWeights = [chances]float64{0.162, 0.541, 1, -0.151, 0.188}
)
