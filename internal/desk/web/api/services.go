package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const servicesTag = "services"

// servicePath is the service that a path names.
type servicePath struct {
	Name text `path:"name" maxLength:"1000" doc:"The name of a service, or an alias."`
}

// serviceList is a page of services.
type serviceList struct {
	operations.ServiceList

	Next string `json:"next,omitempty"`
}

func (a *API) registerServices(r routes) {
	add(r, route{
		role: access.View, pattern: "GET /services", id: "listServices", summary: "List services", tag: servicesTag,
	}, a.listServices)
	add(r, route{
		role: access.View, pattern: "GET /services/{name}", id: "getService", tag: servicesTag,
		summary: "Get a service, and what was done to it",
	}, func(ctx context.Context, in *servicePath) (*result[operations.ServiceDetail], error) {
		return resultOf(a.operations.Services.Get(ctx, string(in.Name)))
	})
}

func (a *API) listServices(ctx context.Context, in *Page) (*result[serviceList], error) {
	all, err := a.operations.Services.List(ctx)
	if err != nil {
		return nil, err
	}
	var next string
	all.Services, next, err = cut(all.Services, *in, func(service operations.Service) string { return service.Name })
	return resultOf(serviceList{all, next}, err)
}
