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
	services := a.operations.Services
	add(r, route[Page, serviceList]{
		role: access.View, pattern: "GET /services", id: "listServices", summary: "List services", tag: servicesTag,
	}, func(ctx context.Context, in *Page) (list serviceList, err error) {
		list.ServiceList, err = services.List(ctx)
		if err == nil {
			list.Services, list.Next, err = cut(list.Services, *in,
				func(service operations.Service) string { return service.Name })
		}
		return list, err
	})
	add(r, route[servicePath, operations.ServiceDetail]{
		role: access.View, pattern: "GET /services/{name}", id: "getService", tag: servicesTag,
		summary: "Get a service, and what was done to it",
	}, func(ctx context.Context, in *servicePath) (operations.ServiceDetail, error) {
		return services.Get(ctx, string(in.Name))
	})
}
