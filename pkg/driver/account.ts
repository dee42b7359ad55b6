import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';

/**
 * Who pays at the provider, as far as can be told: the provider with the Secret that holds the credentials. Calls of one account have
 * their own share of those that may run at once, so that one that is throttled, or hangs, keeps no other waiting.
 */
export function accountOf(
  provider: string,
  { metadata, secretRef, credentialsSecretRef }: Pick<MachineClass, 'metadata' | 'secretRef' | 'credentialsSecretRef'>,
): string {
  const { namespace = metadata.namespace ?? '', name = '' } = credentialsSecretRef ?? secretRef ?? {};
  return `${provider}/${namespace}/${name}`;
}

/** Whether an account is one of a provider, whose name may have slashes, too. */
export function isAccountOf(account: string, provider: string): boolean {
  return account.split('/').slice(0, -2).join('/') === provider;
}
