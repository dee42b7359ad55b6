import { expect, test } from '@jest/globals';

import { ApiError } from '../kube/client/errors.ts';
import { customResourceDefinitions, machines, nodes } from '../kube/client/resource.ts';
import type { Resource } from '../apis/resource.ts';
import { clusterAPIMachines } from '../worlds/cluster-api/api/resources.ts';
import { clusterMachines } from '../worlds/mirantis/api/resources.ts';
import type { KubeObject } from '../apis/meta.ts';
import { describeRefusal } from './describe-refusal.ts';

const notServed = new ApiError(404, 'NotServed', '404 page not found');
const forbidden = new ApiError(403, 'Forbidden', 'no');

test.each<{ resource: Resource<KubeObject>; err: ApiError; want: string }>([
  {
    resource: clusterMachines,
    err: notServed,
    want: 'the control cluster does not serve machines.cluster.k8s.io: apply crds/mirantis/cluster.k8s.io_machines.yaml',
  },
  {
    resource: machines,
    err: notServed,
    want: 'the control cluster does not serve machines.machine.sapcloud.io: apply crds/machine.sapcloud.io_machines.yaml',
  },
  {
    resource: clusterAPIMachines,
    err: new ApiError(404, 'NotServed', 'versions of its group: v1alpha4'),
    want: 'the control cluster does not serve machines.cluster.x-k8s.io in v1beta2 or v1beta1 (versions of its group: v1alpha4): apply crds/cluster-api/cluster.x-k8s.io_machines.yaml, or upgrade the component that serves it',
  },
  {
    resource: { ...customResourceDefinitions, shipped: { roles: 'deploy/rbac/cluster-api.yaml' } },
    err: forbidden,
    want: 'missing permissions in the control cluster: read customresourcedefinitions.apiextensions.k8s.io: apply deploy/rbac/cluster-api.yaml (no)',
  },
  { resource: nodes, err: notServed, want: 'the control cluster does not serve nodes.core: is it an API server?' },
  {
    resource: clusterMachines,
    err: forbidden,
    want: 'missing permissions in the control cluster: read machines.cluster.k8s.io: apply deploy/rbac/mirantis.yaml (no)',
  },
  {
    resource: nodes,
    err: forbidden,
    want: 'missing permissions in the control cluster: read nodes.core: apply deploy/rbac/target.yaml (no)',
  },
])('$resource.plural of group "$resource.group" with $err.reason: $want', ({ resource, err, want }) => {
  expect(describeRefusal('control', 'deploy/rbac/target.yaml', resource, err)).toBe(want);
});
