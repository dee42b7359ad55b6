import { ironCoreMetrics } from '../../../pkg/worlds/ironcore/controllers/metrics.ts';
import * as ironCoreTags from '../../../pkg/worlds/ironcore/driver/tags.ts';
import { ironCoreMachine } from '../crds/ironcore/machine.ts';
import { ironCoreMachineClass } from '../crds/ironcore/machine-class.ts';
import { ironCoreMachinePool } from '../crds/ironcore/machine-pool.ts';
import { ironCoreNetwork, ironCoreNetworkInterface, ironCoreVolume } from '../crds/ironcore/neighbours.ts';
import type { GeneratedWorld } from './generated-world.ts';

const INTRODUCTION = `# API of IronCore

Generated from \`hack/generate/crds\`, from which \`crds/ironcore/\` is generated too: for clusters without IronCore's API server.

For their use, see [Machines of IronCore](../operations/ironcore.md).

Times are RFC 3339. If your version of IronCore differs, its own definitions apply.
`;

export const IRONCORE_GENERATED: GeneratedWorld = {
  definitions: [
    ironCoreMachine,
    ironCoreMachineClass,
    ironCoreMachinePool,
    ironCoreVolume,
    ironCoreNetworkInterface,
    ironCoreNetwork,
  ],
  page: { file: 'docs/reference/ironcore-api.md', introduction: INTRODUCTION },
  tags: {
    file: 'pkg/worlds/ironcore/driver/tags.ts',
    module: ironCoreTags,
    on: 'Machines of `compute.ironcore.dev` and their Secrets, by `ironcore-driver`',
  },
  metrics: ironCoreMetrics,
  bounds: { pool: 'one for each --ironcore-pool' },
};
