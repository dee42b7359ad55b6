import { next } from '../../../../work/reconcile/result.ts';
import { certificatesExpiryOf } from '../defaults.ts';
import type { ClusterAPIMachineStep } from '../machine-pass.ts';

/** Control planes renew machines before their certificates expire. */
export const certificates: ClusterAPIMachineStep = {
  name: 'certificates',
  run({ machine, bootstrap, problems }) {
    const config = bootstrap.kind === 'found' ? bootstrap.external.object : undefined;
    const expiry = certificatesExpiryOf(machine, config);
    if ('problem' in expiry) problems.push(expiry.problem);
    else if (expiry.date !== undefined) machine.status.certificatesExpiryDate = expiry.date;
    else if (bootstrap.kind !== 'reading' && bootstrap.kind !== 'unknown') delete machine.status.certificatesExpiryDate;
    return next;
  },
};
