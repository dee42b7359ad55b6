/** Why no endpoint could be made of a kubeconfig. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
