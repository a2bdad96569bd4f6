// Package contract tells in what a CLI differs from what the contract tests say of it: field by field in
// a test, and as one list at the end of a run of many packages.
//
//	TestContract…  --Compare--> Difference --attribute--> go test -json --Read--> Summary --Print--> the list
//
// A test reports a Difference as an attribute of its own (see Attribute), so that the list need not be
// found in what the tests print. What fails in another way is listed by what testify or the test said.
package contract
