import { annotationsReference } from './annotations-reference.ts';
import { apiReferences } from './api-reference.ts';
import { commandsReference } from './commands-reference.ts';
import { conditionsReference } from './conditions-reference.ts';
import { contractFiles } from './contracts.ts';
import { crdFiles } from './crds/all.ts';
import { driverRulesReference } from './driver-rules-reference.ts';
import { errorCodesReference } from './error-codes-reference.ts';
import { eventsReference } from './events-reference.ts';
import { flagsReference } from './flags-reference.ts';
import { kustomizeRoles } from './kustomize-roles.ts';
import { mcmProviderFiles } from './mcm-provider.ts';
import { metricsReference } from './metrics-reference.ts';
import { prometheusRule } from './prometheus-rule.ts';
import { permissionsReference, roleFilesOf } from './roles.ts';

/** All generated files of the project: path from its root → text. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const roles = await roleFilesOf();
  return new Map([
    ...crdFiles(),
    ...(await contractFiles()),
    ...(await mcmProviderFiles()),
    ...roles,
    ...(await kustomizeRoles(roles)),
    await prometheusRule(),
    ...(await apiReferences()),
    ['docs/reference/annotations.md', await annotationsReference()],
    ['docs/reference/commands.md', await commandsReference()],
    ['docs/reference/conditions.md', await conditionsReference()],
    ['docs/reference/driver-rules.md', await driverRulesReference()],
    ['docs/reference/error-codes.md', await errorCodesReference()],
    ['docs/reference/events.md', await eventsReference()],
    ['docs/reference/flags.md', await flagsReference()],
    ['docs/reference/metrics.md', await metricsReference()],
    ['docs/reference/permissions.md', await permissionsReference()],
  ]);
}
