import { AUTOSCALER } from './list/autoscaler.ts';
import { AUTOSCALER_ANSWERS } from './list/autoscaler-answers.ts';
import { BOUNDS } from './list/bounds.ts';
import { DRIVER } from './list/driver.ts';
import { GATE } from './list/gate.ts';
import { MACHINE_CREATION } from './list/machine-creation.ts';
import { MACHINE_DELETION } from './list/machine-deletion.ts';
import { MACHINE_DEPLOYMENT } from './list/machine-deployment.ts';
import { MACHINE_SET } from './list/machine-set.ts';
import { MAINTENANCE } from './list/maintenance.ts';
import { CLUSTER_API } from './list/cluster-api.ts';
import { IRONCORE } from './list/ironcore.ts';
import { MIRANTIS } from './list/mirantis.ts';
import { MONITORING } from './list/monitoring.ts';
import { OPENSTACK } from './list/openstack.ts';
import { SAFETY } from './list/safety.ts';
import type { Mutation } from './mutation.ts';

/** All mutations. A new one is a row in the file of its area. */
export const MUTATIONS: readonly Mutation[] = [
  ...MACHINE_CREATION,
  ...MACHINE_DELETION,
  ...MACHINE_SET,
  ...MACHINE_DEPLOYMENT,
  ...SAFETY,
  ...GATE,
  ...DRIVER,
  ...AUTOSCALER,
  ...AUTOSCALER_ANSWERS,
  ...BOUNDS,
  ...MAINTENANCE,
  ...CLUSTER_API,
  ...IRONCORE,
  ...MIRANTIS,
  ...MONITORING,
  ...OPENSTACK,
];
