package index

// Made by go test -run TestFit -fit from the training sets; see fit_test.go.
var (
	rankWeights   = [features]float32{3.06, 1.49, 1.44, 0.0344, 1.2, 0, 0, 0.449, 0.799, 1.82, 1}
	gateWeights   = [gates]float64{-0.135, -0.772, -0.179, 0.813, 0.755, -5.54, -2.37, -1.87, 0.749, 0.261, -0.375, 2.89, 2.96, 0.872, 0.81, 0.418, 0.00478, 0.78, 3}
	chanceWeights = [chances]float64{0.326, 0.481, 1.04, -0.137, 0.17}
)
