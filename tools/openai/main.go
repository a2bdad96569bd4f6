// Command openai talks to /v1/chat/completions with the official package of OpenAI for Go. It prints what it got, for a
// test.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run asks twice, the second time for a stream, and once with a wrong token.
func run(ctx context.Context, address, token string) error {
	client := openai.NewClient(option.WithBaseURL(address+"/v1/"), option.WithAPIKey(token))
	models, err := client.Models.List(ctx)
	if err != nil {
		return err
	}
	model := models.Data[0].ID
	fmt.Println("model", model)

	messages := []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("be brief"), openai.UserMessage("how is jellyfin?"),
	}
	first, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: model, Messages: messages})
	if err != nil {
		return err
	}
	said := first.Choices[0].Message.Content
	fmt.Println("whole", said, first.Choices[0].FinishReason, first.Usage.CompletionTokens > 0)

	messages = append(messages, openai.AssistantMessage(said), openai.UserMessage("and since when?"))
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: model, Messages: messages,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			return errors.New("a chunk belongs to another answer")
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	fmt.Println("stream", all.Choices[0].Message.Content, all.Choices[0].FinishReason, all.Usage.CompletionTokens > 0)

	stranger := openai.NewClient(option.WithBaseURL(address+"/v1/"), option.WithAPIKey("wrong"))
	_, err = stranger.Models.List(ctx)
	if failure, ok := errors.AsType[*openai.Error](err); ok {
		fmt.Println("refused", failure.StatusCode, failure.Code)
	}
	return nil
}
