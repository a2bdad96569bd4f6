// The Kubernetes and the KEDA whose schemas deploycheck holds the overlays to. Nothing here is compiled.
module github.com/claudeops/claudeops/tools/kubernetes

go 1.26.8

require (
	github.com/kedacore/keda/v2 v2.18.1
	k8s.io/kubernetes v1.35.4
)
