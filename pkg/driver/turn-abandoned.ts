/** The wait for a turn at a provider was abandoned; nothing was sent. */
export class TurnAbandonedError extends Error {
  override readonly name = 'TurnAbandonedError';
}
