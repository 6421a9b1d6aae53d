// An answer is to what somebody saw: the second of two quick clicks may meet what came in its place, and says nothing.

export const once = (answer: () => void) => (event: MouseEvent): void => {
  if (event.detail <= 1) answer();
};
